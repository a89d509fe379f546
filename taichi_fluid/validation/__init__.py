"""Flows whose answer is published or exact, each as a case: the engine's figure beside the one it should be."""
