"""The arrays of each library: one suite for all, and what is special to one."""
