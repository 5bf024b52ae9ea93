"""Cases of the suites `partition` and `placement`."""
