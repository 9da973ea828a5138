"""What every room builds on: errors, checks, progress, and the arithmetic of privacy promises."""
