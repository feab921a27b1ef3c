"""How long a test waits for what must end: no machine is so slow, so that only a hang fails."""

# Seconds.
PATIENCE = 600
