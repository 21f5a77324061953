"""The situation: what the user asked for and what answers it; no Qt."""
