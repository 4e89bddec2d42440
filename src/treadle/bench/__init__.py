"""Benchmarks: each checks that its results are right, tells where its numbers come from, or reports none."""
