"""What stands at the edges of a flow: the sides of the box and solids in it."""
