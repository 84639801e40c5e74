"""How a decision is declared, taken and kept."""
