"""Background duties, one small file each."""
