"""OpenVINO IR: reading it, and running what is made of split layers."""
