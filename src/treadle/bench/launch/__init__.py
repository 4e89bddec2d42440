"""``treadle bench launch``: how much host time each way of launching a kernel costs."""
