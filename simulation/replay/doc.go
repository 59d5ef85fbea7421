// Package replay asks this version of the program whether it would decide what a live one has decided.
//
// The record of a controller ([record.Read]) has each session and each write to the ledger with all that they were
// judged on: the same pure functions judge them again. The record of a provisioner ([Histories]) has the histories
// of the workflows, with the answers of providers in them: Temporal's own replayer runs the stories against them,
// and what it does not look at, the arguments of activities, the lengths of timers, what is signalled to whom, what
// operators were answered and with what state a story goes on, is compared step by step.
//
// Sentences are told apart from decisions: another wording is counted and shown, and is no difference. A record
// that a release before this one wrote is what an upgrade is checked with.
package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"

	"xce.internal/elastic/controller/record"
)

// Options say what is asked, and who is told how far it is; their zero value asks this program.
type Options struct {
	Judges  Judges
	Stories Stories
	// Codec answers what decrypts the histories of a Temporal namespace; nil where none are encrypted.
	Codec    func(namespace string) (Codec, error)
	Progress func(Progress)
}

// Codec decrypts what is in a history.
type Codec interface {
	DecodeAll(ctx context.Context, message proto.Message) error
}

// Progress is how far a replay is.
type Progress struct{ Files, OfFiles, Decisions int64 }

// Run replays what a folder has: the record of a controller, the histories below it, or both. Where ctx ends, it
// answers what was found so far.
func Run(ctx context.Context, folder string, o Options) (*Report, error) {
	decisions, histories, err := contents(folder)
	if err != nil {
		return nil, err
	}
	r := newReport(folder)
	p := Progress{OfFiles: int64(len(decisions) + len(histories))}
	tell := func() {
		if p.Decisions = r.replayed(); o.Progress != nil {
			o.Progress(p)
		}
	}
	d := decider{Report: r, judges: o.Judges.orLive(), tell: tell}
	for _, path := range decisions {
		if err := d.file(ctx, path); err != nil {
			return r, stoppedBy(ctx, r, err)
		}
		p.Files++
	}
	decode, err := o.decoder(folder, histories)
	if err != nil {
		return nil, err
	}
	for _, path := range histories {
		if ctx.Err() != nil {
			return r, stoppedBy(ctx, r, ctx.Err())
		}
		if err := r.story(ctx, path, o.Stories.orLive(), decode); err != nil {
			return r, err
		}
		p.Files++
		tell()
	}
	return r, nil
}

// stoppedBy answers the error of a replay, which is none where it was broken off.
func stoppedBy(ctx context.Context, r *Report, err error) error {
	if ctx.Err() == nil {
		return err
	}
	r.Stopped = true
	return nil
}

// contents answers the files of a folder that can be replayed.
func contents(folder string) (decisions, histories []string, err error) {
	if decisions, err = record.Files(folder); err != nil {
		return nil, nil, err
	}
	if _, err = os.Stat(filepath.Join(folder, historyFolder)); err == nil {
		histories, err = historyFiles(filepath.Join(folder, historyFolder))
	} else if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	if err == nil && len(decisions)+len(histories) == 0 {
		err = fmt.Errorf("%s has no record: name the folder in controller.record, or that of `xce-elastic simulate record-histories --out`", folder)
	}
	return decisions, histories, err
}
