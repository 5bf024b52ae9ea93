"""State on disk: bucket files, manifests, commit, lock, vacuum. Knows no plan and no Spark."""
