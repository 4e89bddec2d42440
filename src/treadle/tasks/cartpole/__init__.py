"""The cartpole tasks."""
