"""A model cut at narrow places into pieces that are searched one by one."""
