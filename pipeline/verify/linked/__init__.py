"""Run what a library is linked into: a `program`, an `image` under an emulator, an image on a device on the `desk`."""
