"""One physical term each: transport, diffusion, forces, sources, burning. None knows a scene."""
