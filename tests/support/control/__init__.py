"""Programs of clients against a control plane, and the model they are held to."""
