"""Two fields recorded together, as a system: u_t and w_t, each a law of its own with terms that couple them."""
