package config

import (
	"slices"
	"strings"
)

// Provider says what a KMS provider is configured with.
type Provider struct {
	// Name is the type in the API, Section the field beside it.
	Name, Section string
	Fields        []Field
}

type Field struct {
	// Path within the section, with dots.
	Path     string
	Required bool
	// Key says that the setting chooses the key that encrypts: with another value the data must be encrypted anew.
	Key bool
	// Refers is the kind of the object in openshift-config that the value names: Secret or ConfigMap.
	Refers string
	// Valid says what is wrong with a value, if anything; nil: every text will do.
	Valid func(value string) error
}

// ImageSetting is where a section may name the plugin's image.
const ImageSetting = "kmsPluginImage"

// Providers are those that can be asked for. To add one, add it here.
func Providers() []Provider {
	return []Provider{
		{Name: "Vault", Section: "vault", Fields: []Field{
			{Path: ImageSetting, Required: true, Valid: digestImage},
			{Path: "vaultAddress", Required: true, Key: true, Valid: httpsOrigin},
			{Path: "vaultNamespace", Key: true},
			{Path: "vaultAuthNamespace"},
			{Path: "vaultKeyPath", Required: true, Key: true, Valid: matches(vaultKeyPath, "MOUNT/keys/NAME")},
			{Path: "tls.caBundle.name", Refers: "ConfigMap", Valid: objectName},
			{Path: "tls.serverName", Valid: objectName},
			{Path: "authentication.type", Required: true, Valid: oneOf("AppRole")},
			{Path: "authentication.appRole.secret.name", Required: true, Refers: "Secret", Valid: objectName},
		}},
		{Name: "AWS", Section: "aws", Fields: []Field{
			{Path: ImageSetting, Valid: digestImage},
			{Path: "keyARN", Required: true, Key: true, Valid: matches(awsARN, "arn:PARTITION:kms:REGION:ACCOUNT:key/ID")},
			{Path: "region", Required: true, Valid: matches(region, "a region such as us-east-1")},
			{Path: "credentialsSecret.name", Refers: "Secret", Valid: objectName},
		}},
		{Name: "Azure", Section: "azure", Fields: []Field{
			{Path: ImageSetting, Valid: digestImage},
			{Path: "keyVaultName", Required: true, Key: true, Valid: matches(azureName, "3 to 24 letters, digits and dashes")},
			{Path: "keyName", Required: true, Key: true, Valid: matches(azureKey, "letters, digits and dashes")},
			{Path: "keyVersion", Key: true, Valid: matches(azureVersion, "32 hexadecimal digits")},
			{Path: "credentialsSecret.name", Refers: "Secret", Valid: objectName},
		}},
		{Name: "GCP", Section: "gcp", Fields: []Field{
			{Path: ImageSetting, Valid: digestImage},
			{Path: "keyName", Required: true, Key: true, Valid: matches(gcpKey, "projects/P/locations/L/keyRings/R/cryptoKeys/K")},
			{Path: "credentialsSecret.name", Refers: "Secret", Valid: objectName},
		}},
		{Name: "Thales", Section: "thales", Fields: []Field{
			{Path: ImageSetting, Valid: digestImage},
			{Path: "p11LibraryPath", Required: true, Valid: absolute},
			{Path: "keyLabel", Required: true, Key: true},
			{Path: "kekID", Key: true},
			{Path: "algorithm", Key: true, Valid: oneOf("rsa-oaep", "aes-gcm")},
			{Path: "credentialsSecret.name", Required: true, Refers: "Secret", Valid: objectName},
		}},
	}
}

func providerNamed(name string) (Provider, bool) {
	all := Providers()
	i := slices.IndexFunc(all, func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return all[i], true
}

func names() string {
	var all []string
	for _, p := range Providers() {
		all = append(all, p.Name)
	}
	return strings.Join(all, ", ")
}

func (p Provider) paths() string {
	var all []string
	for _, f := range p.Fields {
		all = append(all, f.Path)
	}
	return strings.Join(all, ", ")
}
