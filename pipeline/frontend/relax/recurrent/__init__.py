"""Compute LSTM, GRU and RNN over many steps: one kernel a node, with a loop over the steps."""
