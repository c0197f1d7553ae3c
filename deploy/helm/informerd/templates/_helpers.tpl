{{- define "informerd.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The full name leaves room for what is put behind it. */}}
{{- define "informerd.fullname" -}}
{{- $name := include "informerd.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 52 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* Roles are the cluster's, so that two releases of one name must differ. */}}
{{- define "informerd.clusterName" -}}
{{- $name := include "informerd.fullname" . }}
{{- if eq $name .Release.Namespace }}{{ $name }}{{ else }}{{ printf "%s-%s" .Release.Namespace $name }}{{ end }}
{{- end }}

{{- define "informerd.selectorLabels" -}}
app.kubernetes.io/name: {{ include "informerd.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "informerd.labels" -}}
{{ include "informerd.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "informerd.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "informerd.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- default "default" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "informerd.image" -}}
{{- $image := .Values.image }}
{{- if $image.digest }}{{ printf "%s@%s" $image.repository $image.digest }}
{{- else }}{{ printf "%s:%s" $image.repository (default .Chart.AppVersion $image.tag) }}
{{- end }}
{{- end }}

{{- define "informerd.tlsSecret" -}}
{{- default (printf "%s-tls" (include "informerd.fullname" .)) .Values.tls.secretName }}
{{- end }}

{{/* The names that the certificate is for, as a YAML list. */}}
{{- define "informerd.dnsNames" -}}
{{- $name := include "informerd.fullname" . }}
{{- $names := list $name (printf "%s.%s" $name .Release.Namespace) (printf "%s.%s.svc" $name .Release.Namespace) }}
{{- $names = append $names (printf "%s.%s.svc.cluster.local" $name .Release.Namespace) }}
{{- concat (append $names "localhost") .Values.tls.dnsNames .Values.ingress.hosts | uniq | toYaml }}
{{- end }}

{{- define "informerd.ipAddresses" -}}
{{- prepend .Values.tls.ipAddresses "127.0.0.1" | uniq | toYaml }}
{{- end }}

{{/* GOMEMLIMIT in bytes; nothing without a limit of memory. */}}
{{- define "informerd.goMemLimit" -}}
{{- $limit := dig "limits" "memory" "" .Values.resources | default "" }}
{{- /* A number of bytes, which would be written with an exponent. */}}
{{- $limit = ternary ($limit | int64 | toString) ($limit | toString) (kindIs "float64" $limit) }}
{{- if and $limit .Values.goMemLimitPercent }}
{{- $factors := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- $number := regexFind "^[0-9]+([.][0-9]+)?" $limit }}
{{- $unit := trimPrefix $number $limit }}
{{- if or (not $number) (not (hasKey $factors $unit)) }}
{{- fail (printf "resources.limits.memory: cannot read %q: write it as 1536Mi or 2Gi" $limit) }}
{{- end }}
{{- mulf (float64 $number) (get $factors $unit) .Values.goMemLimitPercent 0.01 | floor | int64 }}
{{- end }}
{{- end }}
