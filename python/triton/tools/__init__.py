"""Tools for people who look inside the compiler."""
