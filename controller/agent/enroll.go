package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"xce.internal/elastic/cluster"
	"xce.internal/elastic/cluster/private"
	"xce.internal/elastic/controller/api"
	"xce.internal/elastic/controller/pki"
)

// Join is what an elastic host was given to join with, as its provider passed it on.
type Join struct {
	Host       string    `json:"host"`
	Controller string    `json:"controller"`
	CA         string    `json:"ca"`
	Token      string    `json:"token"`
	Deadline   time.Time `json:"deadline"`
}

// mostJoin is how large a join file may be.
const mostJoin = 1 << 20

// ReadJoin reads a join file, which has a secret in it.
func ReadJoin(path string) (Join, error) {
	var j Join
	data, err := private.Read(path, mostJoin)
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	if err != nil {
		return j, fmt.Errorf("read the join file %s: %w", path, err)
	}
	for field, value := range map[string]string{"host": j.Host, "controller": j.Controller, "ca": j.CA, "token": j.Token} {
		if value == "" {
			return j, fmt.Errorf("the join file %s has no %s; it must be what the provider was given as `join`", path, field)
		}
	}
	return j, nil
}

// Files of the agent's folder that say who the host is.
const (
	nameFile = "name"
	hostFile = "host" // .crt and .key
	caFile   = "ca.crt"
)

// Enroll answers under which name the host is in the cluster, and a client with
// its certificate. At the first time it gets both with the token; then they are
// in its folder. It tries until the token's deadline.
func Enroll(ctx context.Context, join Join, folder string, capacity cluster.Capacity, log *slog.Logger) (name string, client *api.Client, err error) {
	if err := private.Folder(folder); err != nil {
		return "", nil, fmt.Errorf("make the agent's folder: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(folder, nameFile))
	if errors.Is(err, fs.ErrNotExist) {
		name, err = enrollFirst(ctx, join, folder, capacity, log)
	} else {
		name = strings.TrimSpace(string(text))
	}
	if err != nil {
		return "", nil, fmt.Errorf("join the cluster as %s: %w", join.Host, err)
	}
	tls, err := pki.In(folder, hostFile).Client()
	if err != nil {
		return "", nil, err
	}
	client = api.NewClient(join.Controller, tls)
	go (&renewal{host: name, folder: folder, client: client, log: log, now: time.Now}).run(ctx)
	return name, client, nil
}

// enrollFirst joins with the token. The key is kept before it is used, so that
// whoever tries again is the same; the name is kept last.
func enrollFirst(ctx context.Context, join Join, folder string, capacity cluster.Capacity, log *slog.Logger) (string, error) {
	request, err := keyIn(folder)
	if err != nil {
		return "", err
	}
	instance, err := instanceOf(folder)
	if err != nil {
		return "", err
	}
	config, err := pki.Anonymous([]byte(join.CA))
	if err != nil {
		return "", err
	}
	client := api.NewClient(join.Controller, config)
	defer client.Close()
	ctx, cancel := context.WithDeadline(ctx, join.Deadline)
	defer cancel()
	var joined api.Joined
	err = (&Agent{log: log}).untilDone(ctx, "join", func() (err error) {
		joined, err = client.JoinWithToken(ctx, api.JoinRequest{Host: join.Host, Token: join.Token, Request: string(request), JoinHost: api.JoinHost{
			CPUs: capacity.CPUs, MemoryMB: capacity.MemoryMB, Countables: capacity.Countables,
			Features: capacity.Features, Attributes: capacity.Attributes, Instance: instance,
		}})
		return err
	})
	if err != nil {
		return "", err
	}
	return joined.Name, errors.Join(
		keep(folder, caFile, []byte(join.CA)), keep(folder, hostFile+".crt", []byte(joined.Certificate)), keep(folder, nameFile, []byte(joined.Name+"\n")))
}

// keyIn answers the certificate request of the folder; its key is made once.
func keyIn(folder string) ([]byte, error) {
	const requestFile = "host.csr"
	request, err := os.ReadFile(filepath.Join(folder, requestFile))
	if err == nil {
		return request, nil
	}
	key, request, err := pki.NewRequest()
	if err != nil {
		return nil, err
	}
	return request, errors.Join(keep(folder, hostFile+".key", key), keep(folder, requestFile, request))
}

// keep writes a file whole.
func keep(folder, name string, data []byte) error {
	if err := private.Replace(filepath.Join(folder, name), data); err != nil {
		return fmt.Errorf("keep %s: %w", name, err)
	}
	return nil
}
