"""Name the processor of a target in the words of build systems."""

from __future__ import annotations

from ..targets import Target

#: floating point of a Cortex-M in words of GCC (-mfpu) and of CMSIS (Dfpu), by LLVM's feature. Source: GCC, ARM Options;
#: Open-CMSIS-Pack specification, DfpuEnum. `-fp64` makes a unit of single precision of any
_FPU = {
    "+vfp4d16sp": ("fpv4-sp-d16", "SP_FPU"),
    "+fp-armv8d16sp": ("fpv5-sp-d16", "SP_FPU"),
    "+fp-armv8d16": ("fpv5-d16", "DP_FPU"),
}


def fpu_of(target: Target) -> tuple[str, str] | None:
    """Return the floating-point unit of a Cortex-M in words of GCC and of CMSIS; None without one."""
    return next((words for feature, words in _FPU.items() if feature in target.features), None)


def arduino_folder(target: Target) -> str:
    """Return the folder of an archive in an Arduino library: `build.mcu` of its core, and floating point where there is any.

    A Cortex-M goes by its core, as cortex-m4/fpv4-sp-d16-hard; others by their device, as esp32c3.
    """
    if target.architecture != "thumb":
        return target.name.replace("-", "")
    fpu = fpu_of(target)
    return target.cpu if fpu is None or not target.float_abi else f"{target.cpu}/{fpu[0]}-{target.float_abi}"


def cmsis_core(target: Target) -> str:
    """Return a Cortex-M as CMSIS spells it (DcoreEnum): Cortex-M0+, Cortex-M4."""
    return target.cpu.replace("cortex-m", "Cortex-M").replace("plus", "+")


def zephyr_core(target: Target) -> str:
    """Return Zephyr's Kconfig symbol of the core, as CPU_CORTEX_M4; RISCV elsewhere."""
    return f"CPU_{target.cpu.upper().replace('-', '_')}" if target.architecture == "thumb" else "RISCV"
