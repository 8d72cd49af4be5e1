"""Map-reduce over documents: each is asked with verified quotations, and one answer is written from them."""
