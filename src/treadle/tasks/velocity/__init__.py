"""Walking at a commanded velocity on legs."""
