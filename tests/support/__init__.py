"""What tests share: cases, generators, oracles, faults, brokers."""
