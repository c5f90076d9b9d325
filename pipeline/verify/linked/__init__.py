"""Run programs and images of a library: a `program`, an `image` under an emulator, an image on a device on the `desk`."""
