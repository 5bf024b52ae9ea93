"""Who may do what: tokens, owners, limits of rate, the audit log, refusals as HTTP errors."""
