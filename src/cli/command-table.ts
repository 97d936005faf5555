/** A line of a command's help that can be typed as it stands. */
interface Example {
  readonly about: string
  readonly command: string
}

/** What the command line knows about a command without loading it. */
export interface CommandSpec {
  readonly name: CommandName
  readonly alias?: string
  /** One line, for the list of commands. */
  readonly summary: string
  /** Names of the operands, as in the usage line; the first `required` of them must be there. */
  readonly operands: readonly string[]
  readonly required: number
  /** What else is worth saying, below the usage line. */
  readonly details?: string
  /** Most common first. */
  readonly examples: readonly Example[]
}

export type CommandName =
  | 'copy'
  | 'plan'
  | 'inspect'
  | 'cat'
  | 'ls'
  | 'verify'
  | 'jobs'
  | 'show'
  | 'resume'
  | 'table'
  | 'dev'
  | 'demo'
  | 'completion'
  | 'help'

/** Commands of the specification that are refused by name for now, each with what it will do. */
export const NOT_YET_COMMANDS: Readonly<Record<string, string>> = {
  'retry-rejects': 'load the mended rejects of a job',
  compare: 'the three experiments on your own machines',
  pg: 'aws_s3 functions for a PostgreSQL that is not Aurora',
  uploads: 'list and abort orphaned multipart uploads',
  worker: 'work on queued jobs',
  lambda: 'the loader as an AWS Lambda function',
  serve: 'local web page and HTTP API',
}

const URLS =
  'A URL is ./file, file:///…, - (standard stream), https://…, s3://bucket/key, s3://bucket/prefix/, s3://bucket/glob-*, postgres://user@host/db?table=schema.table, or dynamodb://region/Table.'

/** Every command that is built, in the order of the help. */
export const COMMANDS: readonly CommandSpec[] = [
  {
    name: 'copy',
    alias: 'cp',
    summary: 'load, unload or copy: SOURCE to SINK',
    operands: ['SOURCE', 'SINK'],
    required: 2,
    details: URLS,
    examples: [
      {
        about: 'CSV on S3 into a table',
        command: "sluice copy s3://bucket/people.csv 'postgres://user@host/db?table=people'",
      },
      {
        about: 'a table to Parquet on S3, in parallel parts',
        command: "sluice copy 'postgres://user@host/db?table=people' s3://bucket/people.parquet",
      },
      {
        about: 'a zipped CSV into a DynamoDB table, made on the way',
        command:
          'sluice copy https://host/postcodes.zip dynamodb:///Postcodes --create-table --partition-key postcode:S',
      },
    ],
  },
  {
    name: 'plan',
    summary: 'what copy would do: partitions, parts, SQL, columns; writes nothing',
    operands: ['SOURCE', 'SINK'],
    required: 2,
    details: 'The same as copy --dry-run. Takes the flags of copy.',
    examples: [
      {
        about: 'what would be loaded, and how',
        command: "sluice plan s3://bucket/people.csv 'postgres://user@host/db?table=people'",
      },
      {
        about: 'the CREATE TABLE that --create would run',
        command: "sluice plan people.csv 'postgres://user@host/db?table=people' --create",
      },
      { about: 'parts of an upload, for a program', command: 'sluice plan big.bin s3://bucket/big.bin --json' },
    ],
  },
  {
    name: 'inspect',
    summary: 'columns, sample rows, counts and partitions of a file, object or table',
    operands: ['URL'],
    required: 1,
    examples: [
      { about: 'what is in it', command: 'sluice inspect s3://bucket/people.csv' },
      { about: 'exact counts and a profile of each column', command: 'sluice inspect people.csv.gz --full' },
      { about: 'a CREATE TABLE that would hold it', command: 'sluice inspect people.csv --ddl postgres' },
    ],
  },
  {
    name: 'cat',
    summary: 'the bytes of a file or object, decompressed, or its rows as CSV or JSON Lines',
    operands: ['URL'],
    required: 1,
    examples: [
      { about: 'a compressed object as text', command: 'sluice cat s3://bucket/people.csv.gz' },
      { about: 'an entry of a zip', command: 'sluice cat https://host/data.zip --entry people.csv' },
      { about: 'rows as JSON Lines', command: 'sluice cat people.csv --as jsonl' },
    ],
  },
  {
    name: 'ls',
    summary: 'objects or files with size, time and storage class',
    operands: ['URL'],
    required: 1,
    details: 'With --json each object is one JSON object on a line of its own.',
    examples: [
      { about: 'everything under a prefix', command: 'sluice ls s3://bucket/2026/' },
      { about: 'what a glob matches', command: "sluice ls 's3://bucket/2026/*.csv.gz'" },
      { about: 'for a program', command: 'sluice ls s3://bucket/2026/ --json' },
    ],
  },
  {
    name: 'verify',
    summary: 'compare both sides: counts, and hashes that do not depend on the order',
    operands: ['SOURCE', 'SINK'],
    required: 2,
    details:
      'Exits with 0 where both are the same, with 1 where they differ. Give it the mapping flags that the copy had.',
    examples: [
      { about: 'a load', command: "sluice verify s3://bucket/people.csv 'postgres://user@host/db?table=people'" },
      { about: 'a byte copy', command: 'sluice verify big.bin s3://bucket/big.bin' },
      {
        about: 'more of the differences',
        command: "sluice verify people.csv 'postgres://user@host/db?table=people' --limit 100",
      },
    ],
  },
  {
    name: 'jobs',
    summary: 'jobs that ran from this machine, latest first',
    operands: [],
    required: 0,
    examples: [
      { about: 'all of them', command: 'sluice jobs' },
      { about: 'for a program', command: 'sluice jobs --json' },
      { about: 'those of another state folder', command: 'sluice jobs --state-dir /var/lib/sluice' },
    ],
  },
  {
    name: 'show',
    summary: 'one job: options, runs, partitions, result',
    operands: ['JOB'],
    required: 1,
    examples: [
      { about: 'what became of a job', command: 'sluice show 20261202-141500-3f9a2c' },
      { about: 'for a program', command: 'sluice show 20261202-141500-3f9a2c --json' },
      {
        about: 'a job of another state folder',
        command: 'sluice show 20261202-141500-3f9a2c --state-dir /var/lib/sluice',
      },
    ],
  },
  {
    name: 'resume',
    summary: 'go on with a job that was stopped; needs nothing but its id',
    operands: ['JOB'],
    required: 1,
    details: 'The same as the command that began it, with --job-id JOB --resume.',
    examples: [
      { about: 'go on', command: 'sluice resume 20261202-141500-3f9a2c' },
      { about: 'with its result for a program', command: 'sluice resume 20261202-141500-3f9a2c --json' },
      { about: 'without a word', command: 'sluice resume 20261202-141500-3f9a2c -q' },
    ],
  },
  {
    name: 'table',
    summary: 'DynamoDB tables: create, describe or delete one',
    operands: ['ACTION', 'URL'],
    required: 2,
    details:
      'ACTION is create, describe or delete. create wants --partition-key, and waits until the table is there: on demand, or provisioned with --read-units and --write-units. delete asks, or wants --yes.',
    examples: [
      {
        about: 'a key of two attributes; 20,000 writes a second borne at once',
        command:
          'sluice table create dynamodb:///Readings --partition-key sensor:S --sort-key time:N --warm-writes 20000',
      },
      { about: 'keys, billing and size', command: 'sluice table describe dynamodb://eu-west-1/Readings' },
      { about: 'a table and all that is in it', command: 'sluice table delete dynamodb:///Readings --yes' },
    ],
  },
  {
    name: 'dev',
    summary: 'an embedded PostgreSQL, S3 and DynamoDB to try things on, until a signal ends them',
    operands: [],
    required: 0,
    details:
      'Without --postgres, --s3 and --dynamodb it starts all three. Prints their URLs and what to export. Loopback only, on free ports.',
    examples: [
      { about: 'all services', command: 'sluice dev' },
      { about: 'keep their data for the next time', command: 'sluice dev --keep ./dev-data' },
      { about: 'URLs and environment for a program', command: 'sluice dev --s3 --json' },
    ],
  },
  {
    name: 'demo',
    summary: 'see it work: the three jobs on embedded services, each verified, and a table of what was done',
    operands: [],
    required: 0,
    details:
      'CSV on S3 into PostgreSQL; a table to Parquet on S3; a zipped CSV on the web into DynamoDB, and out again. With --rows N there is one postcode for ten rows.',
    examples: [
      { about: 'the demo', command: 'sluice demo' },
      { about: 'with more rows', command: 'sluice demo --rows 2000000' },
      { about: 'leave the services running afterwards', command: 'sluice demo --keep' },
    ],
  },
  {
    name: 'completion',
    summary: 'a completion script for bash, zsh or fish',
    operands: ['SHELL'],
    required: 1,
    examples: [
      { about: 'bash, for this session', command: 'source <(sluice completion bash)' },
      { about: 'zsh, for good', command: 'sluice completion zsh > "${fpath[1]}/_sluice"' },
      { about: 'fish, for good', command: 'sluice completion fish > ~/.config/fish/completions/sluice.fish' },
    ],
  },
  {
    name: 'help',
    summary: 'this list, or the help of a command',
    operands: ['COMMAND'],
    required: 0,
    examples: [
      { about: 'all commands', command: 'sluice help' },
      { about: 'flags and examples of one', command: 'sluice help copy' },
      { about: 'the same as sluice cp --help', command: 'sluice help cp' },
    ],
  },
]

/** The command of that name or alias. */
export function findCommand(name: string): CommandSpec | undefined {
  return COMMANDS.find((command) => command.name === name || command.alias === name)
}
