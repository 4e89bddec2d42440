"""``treadle bench soak``: random launch programs for a long time, compared with eager, watched for growth."""
