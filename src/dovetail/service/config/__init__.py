"""The YAML file of a service, checked as a whole."""
