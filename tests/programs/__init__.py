"""Small message-passing programs whose phases are known by construction: `catalogue` holds them, `simulated`
runs them on a machine of its own with noise, `recorded` as processes of MPI."""
