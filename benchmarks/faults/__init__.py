"""What is done to sessions on purpose: processes killed, files damaged, power lost; and what they answer after it."""
