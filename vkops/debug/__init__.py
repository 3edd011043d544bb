"""What helps to find out what went wrong: captures of dispatches, and reports for bugs."""
