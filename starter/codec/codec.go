// Package codec encrypts what workflows take and answer before it goes to
// Temporal, with AES-256-GCM and keys that can change.
//
// A payload's metadata name the key that encrypted it, so that several may be in
// use. Each payload has a key of its own, derived from that one and a random
// salt: random nonces of one key would be used up by a busy cluster within
// months. The name of the key and the Temporal namespace are bound to it; what a
// payload stands for in its workflow is not, as nothing tells the codec.
package codec

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/proxy"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"xce.internal/elastic/controller/pki/reread"
)

const (
	encoding    = "binary/encrypted"
	cipherName  = "AES-256-GCM"
	metaCipher  = "encryption-cipher"
	metaKey     = "encryption-key-id"
	saltBytes   = 16
	derivedInfo = "xce-elastic payload 1"
)

// Codec encrypts and decrypts payloads of one Temporal namespace. It implements
// the SDK's PayloadCodec. What is not encrypted is decoded to itself, so that
// workflows that began without encryption go on.
type Codec struct {
	namespace string
	path      string
	keys      *reread.File[[]key] // nil where nothing is encrypted
}

// None answers a codec that encrypts nothing, and says of what is encrypted that
// it needs keys.
func None(namespace string) *Codec { return &Codec{namespace: namespace} }

// Open answers a codec with the keys of a file, which is read again when it changes.
func Open(path, namespace string, log *slog.Logger) (*Codec, error) {
	keys, err := reread.Open(func() ([]key, error) { return readKeys(path) }, func(err error) {
		log.Error("the keys of payloads cannot be read again; those before stay in use", "error", err)
	}, path)
	if err != nil {
		return nil, err
	}
	return &Codec{namespace: namespace, path: path, keys: keys}, nil
}

// Converters answers what a Temporal client converts values and failures with.
// Where payloads are encrypted, so are the messages of failures.
func (c *Codec) Converters() (converter.DataConverter, converter.FailureConverter) {
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), c)
	return data, temporal.NewDefaultFailureConverter(temporal.DefaultFailureConverterOptions{
		DataConverter: data, EncodeCommonAttributes: c.keys != nil,
	})
}

// Encode encrypts payloads.
func (c *Codec) Encode(payloads []*common.Payload) ([]*common.Payload, error) {
	if c.keys == nil {
		return payloads, nil
	}
	return each(payloads, func(p *common.Payload) (*common.Payload, error) { return c.seal(c.keys.Get()[0], p) })
}

// Decode decrypts payloads.
func (c *Codec) Decode(payloads []*common.Payload) ([]*common.Payload, error) {
	return each(payloads, func(p *common.Payload) (*common.Payload, error) {
		if string(p.GetMetadata()[converter.MetadataEncoding]) != encoding {
			return p, nil
		}
		return c.open(p)
	})
}

// each converts payloads. A fault fails the workflow's task, which is tried again,
// and not the workflow: keys may be on their way.
func each(payloads []*common.Payload, convert func(*common.Payload) (*common.Payload, error)) ([]*common.Payload, error) {
	converted := make([]*common.Payload, len(payloads))
	for i, p := range payloads {
		var err error
		if converted[i], err = convert(p); err != nil {
			return payloads, converter.NewWorkflowTaskFailureError(err)
		}
	}
	return converted, nil
}

func (c *Codec) seal(k key, p *common.Payload) (*common.Payload, error) {
	plain, err := proto.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encrypt payload: %w", err)
	}
	salt := make([]byte, saltBytes)
	_, _ = rand.Read(salt) // never fails
	gcm, err := k.derive(salt)
	if err != nil {
		return nil, err
	}
	return &common.Payload{
		Metadata: map[string][]byte{
			converter.MetadataEncoding: []byte(encoding), metaCipher: []byte(cipherName), metaKey: []byte(k.id),
		},
		Data: gcm.Seal(salt, nil, plain, c.bound(k.id)),
	}, nil
}

func (c *Codec) open(p *common.Payload) (*common.Payload, error) {
	k, err := c.keyOf(p)
	if err != nil {
		return nil, err
	}
	if len(p.GetData()) < saltBytes {
		return nil, errors.New("decrypt payload: it is cut short")
	}
	gcm, err := k.derive(p.GetData()[:saltBytes])
	if err != nil {
		return nil, err
	}
	plain, err := gcm.Open(nil, nil, p.GetData()[saltBytes:], c.bound(k.id))
	if err != nil {
		return nil, fmt.Errorf("decrypt payload: it was not encrypted with the key %s for namespace %s, or was changed", k.id, c.namespace)
	}
	opened := &common.Payload{}
	if err := proto.Unmarshal(plain, opened); err != nil {
		return nil, fmt.Errorf("decrypt payload: %w", err)
	}
	return opened, nil
}

// keyOf answers the key that encrypted a payload.
func (c *Codec) keyOf(p *common.Payload) (key, error) {
	id, with := string(p.GetMetadata()[metaKey]), string(p.GetMetadata()[metaCipher])
	switch {
	case with != cipherName:
		return key{}, fmt.Errorf("decrypt payload: it is encrypted with %q, not with %s; something else encrypted it", with, cipherName)
	case c.keys == nil:
		return key{}, fmt.Errorf("decrypt payload: it is encrypted with the key %q, and no keys are given; name their file, that of temporal.codec.keys", id)
	}
	for _, k := range c.keys.Get() {
		if k.id == id {
			return k, nil
		}
	}
	return key{}, fmt.Errorf("decrypt payload: it is encrypted with the key %q, which %s does not have; add its line", id, c.path)
}

// bound is what a payload is bound to: others with the same key are not to be
// decrypted in its place.
func (c *Codec) bound(id string) []byte {
	return []byte(derivedInfo + "\x00" + encoding + "\x00" + cipherName + "\x00" + id + "\x00" + c.namespace)
}

// derive answers the cipher of one payload, which makes its nonce itself.
func (k key) derive(salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, k.secret, salt, derivedInfo, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a payload: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a payload: %w", err)
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// DecodeAll decrypts every payload in a message, such as a history.
func (c *Codec) DecodeAll(ctx context.Context, message proto.Message) error {
	return proxy.VisitPayloads(ctx, message, proxy.VisitPayloadsOptions{
		SkipSearchAttributes: true,
		Visitor: func(_ *proxy.VisitPayloadsContext, ps []*common.Payload) ([]*common.Payload, error) {
			return c.Decode(ps)
		},
	})
}
