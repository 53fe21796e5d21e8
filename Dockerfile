# docker build -t mneme .
# docker run --rm -u "$(id -u):$(id -g)" -v "$PWD:/here" mneme run demo
#
# The first stage makes the tarball (`make dist`), the second holds what it unpacks to and nothing else. It draws PNG and GIF; windows, MP4
# and Open MPI need more: FROM mneme, then apt-get install.
FROM debian:bookworm-slim AS build
RUN apt-get -qq update && apt-get -qq -y --no-install-recommends install make git
COPY . /mneme
WORKDIR /mneme
RUN bindings/packages.sh demo
RUN make dist DIST=/mneme.tar.gz
RUN mkdir /opt/mneme && tar --strip-components=1 -C /opt/mneme -xzf /mneme.tar.gz

FROM debian:bookworm-slim
COPY --from=build /opt/mneme /opt/mneme
RUN ln -s /opt/mneme/bin/mneme /usr/local/bin/mneme
WORKDIR /here
ENTRYPOINT ["mneme"]
CMD ["help"]
