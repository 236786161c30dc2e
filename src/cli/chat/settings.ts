/**
 * What can be chosen in a session: its model and its mode, whichever way the agent offers them.
 *
 * It asks nobody; a choice says with which request it is made.
 */
import type {
  AvailableCommand,
  NewSessionResponse,
  SessionConfigOption,
  SessionModeState,
  SessionUpdate,
} from '@agentclientprotocol/sdk'

export type SettingName = 'model' | 'mode'

export interface Setting {
  readonly current: string
  readonly options: readonly { readonly value: string; readonly name: string; readonly about?: string | undefined }[]
  /** The configuration option to set; undefined: a mode of the session. */
  readonly configId: string | undefined
}

export class Settings {
  #options: readonly SessionConfigOption[] = []
  #modes: SessionModeState | undefined
  /** What the agent itself takes behind a slash. */
  commands: readonly AvailableCommand[] = []

  /** A session was opened: all of it is new. */
  open({ configOptions, modes }: Pick<NewSessionResponse, 'configOptions' | 'modes'>): void {
    this.#options = configOptions ?? []
    this.#modes = modes ?? undefined
  }

  setOptions(options: readonly SessionConfigOption[]): void {
    this.#options = options
  }

  setMode(currentModeId: string): void {
    if (this.#modes !== undefined) this.#modes = { ...this.#modes, currentModeId }
  }

  take(update: SessionUpdate): void {
    if (update.sessionUpdate === 'available_commands_update') this.commands = update.availableCommands
    if (update.sessionUpdate === 'config_option_update') this.setOptions(update.configOptions)
    if (update.sessionUpdate === 'current_mode_update') this.setMode(update.currentModeId)
  }

  find(name: SettingName): Setting | undefined {
    const option =
      this.#options.find(({ category }) => category === name) ?? this.#options.find(({ id }) => id === name)
    if (option?.type === 'select') {
      const options = option.options.flatMap((entry) => ('options' in entry ? entry.options : [entry]))
      return {
        current: option.currentValue,
        options: options.map(({ value, name: shown, description }) => ({
          value,
          name: shown,
          about: description ?? undefined,
        })),
        configId: option.id,
      }
    }
    if (name === 'model' || this.#modes === undefined) return undefined
    const { currentModeId: current, availableModes } = this.#modes
    const options = availableModes.map(({ id, name: shown, description }) => ({
      value: id,
      name: shown,
      about: description ?? undefined,
    }))
    return { current, options, configId: undefined }
  }
}
