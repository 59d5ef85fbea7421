package store

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// News is what one controller tells the others of a change.
type News struct {
	// Revision is that of the change's last audit record; 0 for a change without.
	Revision int64 `json:"revision,omitempty"`
	// Hosts are those whose jobs changed, or that are gone; All stands for too many to name.
	Hosts []string `json:"hosts,omitempty"`
	All   bool     `json:"all,omitempty"`
	// Lead tells that the right to run sessions is free.
	Lead bool `json:"lead,omitempty"`

	By string `json:"by,omitempty"`
}

const (
	// channel is that of the schema.
	channel = "'xce_elastic_' || current_schema()"
	// mostNews is how long a message may be; the server takes less than 8000 bytes.
	mostNews = 7000
	// lookEvery is how often a connection without news is looked at.
	lookEvery = 5 * time.Second
	// reconnectAfter is the pause after a connection was lost.
	reconnectAfter = 500 * time.Millisecond
)

// encode answers the message; empty where there is nothing to tell.
func (n News) encode(writer string) (string, error) {
	if n.Revision == 0 && !n.Lead && !n.All && len(n.Hosts) == 0 {
		return "", nil
	}
	n.By = writer
	text, err := json.Marshal(n)
	if err == nil && len(text) > mostNews {
		n.Hosts, n.All = nil, true
		text, err = json.Marshal(n)
	}
	if err != nil {
		return "", fmt.Errorf("encode news: %w", err)
	}
	return string(text), nil
}

// Listen tells of what other controllers change, until ctx ends. After a time
// without connection it tells that anything may have changed. Where no one else
// has the state, it ends at once.
func (s *Store) Listen(ctx context.Context, log *slog.Logger, told func(News)) {
	if s.shared == nil {
		return
	}
	for away := false; ; {
		err := s.listen(ctx, func(n News) {
			if away {
				log.Info("news of other controllers come again")
				away = false
			}
			told(n)
		})
		if ctx.Err() != nil {
			return
		}
		if !away {
			log.Warn("no news of other controllers; trying again", "error", err)
			away = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(reconnectAfter):
		}
	}
}

// listen listens on one connection until it is lost.
func (s *Store) listen(ctx context.Context, told func(News)) error {
	conn, err := pgx.ConnectConfig(ctx, s.shared.config.Copy())
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(end)
	}()
	var name string
	if err := conn.QueryRow(ctx, "SELECT "+channel).Scan(&name); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{name}.Sanitize()); err != nil {
		return err
	}
	told(News{All: true})
	for {
		message, err := nextMessage(ctx, conn)
		if err != nil {
			return err
		}
		if message == nil {
			continue
		}
		var n News
		if err := json.Unmarshal([]byte(message.Payload), &n); err != nil {
			n = News{All: true} // of a newer version
		}
		if n.By != s.shared.writer {
			told(n)
		}
	}
}

// nextMessage waits for a message; where none comes for a while, it asks whether
// the server still answers, and answers nil.
func nextMessage(ctx context.Context, conn *pgx.Conn) (*pgconn.Notification, error) {
	wait, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	message, err := conn.WaitForNotification(wait)
	if err == nil || wait.Err() == nil || ctx.Err() != nil {
		return message, err
	}
	ask, cancel := context.WithTimeout(ctx, lookEvery)
	defer cancel()
	return nil, conn.Ping(ask)
}
