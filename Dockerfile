# The program and the provider scripts, as static binaries in an image without
# anything else but certificates and a shell for scripts of one's own.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=unknown
RUN CGO_ENABLED=0 go build -buildvcs=false -ldflags "-s -w -X main.version=${VERSION}" -o /out/xce-elastic ./cmd/xce-elastic \
 && CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o /out/pool ./providers/scripts/pool \
 && CGO_ENABLED=0 go build -buildvcs=false -ldflags '-s -w' -o /out/local ./providers/scripts/local

FROM alpine:3.22
RUN apk add --no-cache ca-certificates tzdata && adduser -D -u 1000 xce
COPY --from=build /out/ /usr/local/bin/
USER xce
WORKDIR /var/lib/xce
ENTRYPOINT ["xce-elastic"]
