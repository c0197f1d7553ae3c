{{/* The port that informerd listens on in its pod. */}}
{{- define "informerd.port" -}}8443{{- end }}

{{/* Where files are in the pod. */}}
{{- define "informerd.paths" -}}
config: /etc/informerd
tls: /etc/informerd-tls
clientCA: /etc/informerd-client-ca
requestHeader: /etc/informerd-request-header
data: /var/lib/informerd
keys: /etc/informerd-keys
replicaCA: /etc/informerd-replica-ca
{{- end }}

{{/*
config.yaml: the value config, and what the chart knows. This is the one place that
names the keys of config.yaml which the chart sets.
*/}}
{{- define "informerd.config" -}}
{{- range $key := list "listen" "tls" "authentication" "authorization" }}
{{- if hasKey $.Values.config $key }}
{{- fail (printf "config.%s: the chart sets it, see the values authentication, authorization, service and tls" $key) }}
{{- end }}
{{- end }}
{{- if hasKey .Values.config "replicas" }}
{{- fail "config.replicas: the chart sets it, see the value leaderElection" }}
{{- end }}
{{- range $key := list "path" "encryption" }}
{{- if hasKey (dig "snapshot" (dict) $.Values.config) $key }}
{{- fail (printf "config.snapshot.%s: the chart sets it, see the value persistence" $key) }}
{{- end }}
{{- end }}
{{- $paths := include "informerd.paths" . | fromYaml }}
{{- $given := .Values.authentication }}
{{- $authentication := dict "anonymous" $given.anonymous "tokenReview" $given.tokenReview }}
{{- if or $given.clientCA.configMap $given.clientCA.secret }}
{{- $_ := set $authentication "clientCAFile" (printf "%s/%s" $paths.clientCA $given.clientCA.key) }}
{{- end }}
{{- with $given.requestHeader }}
{{- if or .configMap .secret }}
{{- $proxy := pick . "allowedNames" "usernameHeaders" "uidHeaders" "groupHeaders" "extraHeaderPrefixes" }}
{{- $_ := set $proxy "clientCAFile" (printf "%s/%s" $paths.requestHeader .key) }}
{{- $_ := set $authentication "requestHeader" $proxy }}
{{- end }}
{{- end }}
{{- $snapshot := dict }}
{{- $database := include "informerd.database" . }}
{{- if not $database }}
{{- $_ := set $snapshot "path" (printf "%s/informerd.db" $paths.data) }}
{{- end }}
{{- with .Values.persistence.encryption }}
{{- if .secretName }}
{{- if $database }}
{{- fail "persistence.encryption: only a file is encrypted, and config.snapshot.postgres is a database" }}
{{- end }}
{{- $_ := set $snapshot "encryption" (dict "keyFile" (printf "%s/%s" $paths.keys .key)) }}
{{- end }}
{{- end }}
{{- $own := dict
  "listen" (printf ":%s" (include "informerd.port" .))
  "tls" (dict "certFile" (printf "%s/tls.crt" $paths.tls) "keyFile" (printf "%s/tls.key" $paths.tls))
  "snapshot" $snapshot
  "authentication" $authentication
  "authorization" .Values.authorization
}}
{{- with .Values.leaderElection }}
{{- if .enabled }}
{{- if and (dig "handlers" (list) $.Values.config) (not $database) }}
{{- fail "config.handlers: with leaderElection they need config.snapshot.postgres, since the next leader must know what was delivered" }}
{{- end }}
{{- $full := include "informerd.fullname" $ }}
{{- $_ := set $own "replicas" (dict
  "lease" (printf "%s/%s" $.Release.Namespace $full)
  "leaseDuration" .leaseDuration
  "caFile" (printf "%s/%s" $paths.replicaCA .ca.key)
  "serverName" (default (printf "%s.%s.svc" $full $.Release.Namespace) .serverName)
) }}
{{- end }}
{{- end }}
{{- if .Values.audit.stdout }}
{{- if hasKey (dig "audit" (dict) .Values.config) "file" }}
{{- fail "config.audit.file: the value audit.stdout sets it, give one of them" }}
{{- end }}
{{- $_ := set $own "audit" (dict "file" "-") }}
{{- end }}
{{- $log := dict "log" (dict "format" "json") }}
{{- mergeOverwrite $log (deepCopy .Values.config) $own | toYaml }}
{{- end }}

{{/* "true" if the snapshot is in a database, and needs no volume. */}}
{{- define "informerd.database" -}}
{{- if hasKey (dig "snapshot" (dict) .Values.config) "postgres" }}true{{ end }}
{{- end }}

{{/* What a change of the configuration needs a restart for: the rest is read while
informerd runs. */}}
{{- define "informerd.restarting" -}}
{{- omit (include "informerd.config" . | fromYaml) "kubernetes" "references" "resources" "search" | toYaml | sha256sum }}
{{- end }}
