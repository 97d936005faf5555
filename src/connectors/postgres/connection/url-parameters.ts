import { SluiceError } from '../../../core/errors.ts'
import { nearest } from '../nearest.ts'

/** libpq's connection parameters that sluice obeys, and the environment variable that gives each where the URL does not. */
const OBEYED: Readonly<Record<string, string | null>> = {
  host: 'PGHOST',
  hostaddr: 'PGHOSTADDR',
  port: 'PGPORT',
  dbname: 'PGDATABASE',
  user: 'PGUSER',
  password: 'PGPASSWORD',
  passfile: 'PGPASSFILE',
  service: 'PGSERVICE',
  servicefile: 'PGSERVICEFILE',
  options: 'PGOPTIONS',
  application_name: 'PGAPPNAME',
  connect_timeout: 'PGCONNECT_TIMEOUT',
  target_session_attrs: 'PGTARGETSESSIONATTRS',
  load_balance_hosts: 'PGLOADBALANCEHOSTS',
  channel_binding: 'PGCHANNELBINDING',
  sslmode: 'PGSSLMODE',
  sslnegotiation: 'PGSSLNEGOTIATION',
  sslrootcert: 'PGSSLROOTCERT',
  sslcert: 'PGSSLCERT',
  sslkey: 'PGSSLKEY',
  sslpassword: null,
  ssl_min_protocol_version: 'PGSSLMINPROTOCOLVERSION',
  ssl_max_protocol_version: 'PGSSLMAXPROTOCOLVERSION',
  gssencmode: 'PGGSSENCMODE',
}

/** Parameters that change nothing here: we set the encoding, keep connections alive, and speak no GSSAPI. */
const HARMLESS = [
  'client_encoding',
  'fallback_application_name',
  'gssdelegation',
  'gsslib',
  'keepalives',
  'keepalives_count',
  'keepalives_idle',
  'keepalives_interval',
  'krbsrvname',
  'max_protocol_version',
  'min_protocol_version',
  'sslcompression',
  'sslsni',
  'tcp_user_timeout',
]

/** Parameters that promise something which we would break by passing over them. */
const REFUSED: Readonly<Record<string, string | null>> = {
  oauth_client_id: null,
  oauth_client_secret: null,
  oauth_issuer: null,
  oauth_scope: null,
  replication: null,
  require_auth: 'PGREQUIREAUTH',
  requirepeer: 'PGREQUIREPEER',
  requiressl: 'PGREQUIRESSL',
  scram_client_key: null,
  scram_server_key: null,
  sslcertmode: 'PGSSLCERTMODE',
  sslcrl: 'PGSSLCRL',
  sslcrldir: 'PGSSLCRLDIR',
  sslkeylogfile: null,
}

/** sluice's own. */
const OWN = ['table', 'schema']

/**
 * Checks the names of a URL's (or a service file's) parameters.
 *
 * @throws SLUICE_USAGE for an unknown name, with the nearest known one; SLUICE_NOT_YET for one that we can't honour
 */
export function checkParameterNames(names: Iterable<string>, where: string, own: boolean): void {
  for (const name of names) {
    if (Object.hasOwn(OBEYED, name) || HARMLESS.includes(name) || (own && OWN.includes(name))) continue
    if (Object.hasOwn(REFUSED, name)) throw notYet(name, where)
    const likely = nearest(name, [...Object.keys(OBEYED), ...OWN, ...HARMLESS])
    throw new SluiceError('SLUICE_USAGE', `${where} has an unknown parameter: ${name}`, {
      hint: likely === null ? "the parameters are libpq's, and table, schema" : `did you mean ${likely}?`,
    })
  }
}

/**
 * What the PG* variables say, by parameter name. Empty variables count as unset, as in libpq.
 *
 * @throws SLUICE_NOT_YET for one that we can't honour
 */
export function environmentParameters(env: Readonly<Record<string, string | undefined>>): Map<string, string> {
  for (const [name, variable] of Object.entries(REFUSED)) {
    if (variable !== null && env[variable]) throw notYet(variable, `parameter ${name}`)
  }
  const values = new Map<string, string>()
  for (const [name, variable] of Object.entries(OBEYED)) {
    const value = variable === null ? undefined : env[variable]
    if (value) values.set(name, value)
  }
  return values
}

function notYet(name: string, where: string): SluiceError {
  return new SluiceError('SLUICE_NOT_YET', `${where}: ${name} is not supported`, {
    hint: 'leave it out if the connection is safe without it',
  })
}
