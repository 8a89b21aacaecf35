"""The idea: records of operator versions, and one interpreter that turns them into plans."""
