"""What lives beside the public API: names that programs import, whether they use them or not."""
