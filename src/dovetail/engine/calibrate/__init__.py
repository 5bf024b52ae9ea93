"""What elementary work costs on this machine: measured, fitted, remembered."""
