# passfit for Windows and macOS, and for CI without Python: everything comes from Debian's and Python's registries.
#   docker build -t passfit .
#   docker run --rm -v "$PWD:/work" passfit compile model.onnx --target rpi4 --out build
# With MLflow's pages, DVC and a shell: docker run --rm -it -v "$PWD:/work" -p 5000:5000 --entrypoint bash passfit
ARG BASE=debian:bookworm-slim
FROM ${BASE}

# The emulators run libraries of foreign targets and images of boards; git is for DVC; the rest is Python with pip.
RUN apt-get update -qq \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
      ca-certificates git python3 python3-venv qemu-user-static qemu-system-arm qemu-system-misc \
 && rm -rf /var/lib/apt/lists/*

# Dependencies first: they stay in a layer of their own when only the source changes.
WORKDIR /opt/passfit
COPY pyproject.toml README.md LICENSE ./
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
RUN python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > requirements.txt \
 && pip install --no-cache-dir --disable-pip-version-check --quiet --requirement requirements.txt
COPY pipeline pipeline
COPY stages stages
RUN pip install --no-cache-dir --disable-pip-version-check --quiet --no-deps .

# Files that are written belong to the caller: `--user $(id -u):$(id -g)` needs a home that anyone may write.
ENV HOME=/tmp
WORKDIR /work
RUN git config --system --add safe.directory '*'
ENTRYPOINT ["passfit"]
CMD ["--help"]
