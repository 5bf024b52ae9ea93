"""All queries planned together (CLASH-MQO): probe orders, intermediates and partitionings of least total cost."""
