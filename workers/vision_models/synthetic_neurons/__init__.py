"""What synthetic neurons are: their arithmetic, and tables of them."""
