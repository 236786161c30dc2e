/**
 * Keeps the licences of packages whose modules have been taken into dist/, and their versions in dist/vendor/packages.json.
 *
 * Invariant: what was taken in and has no licence file ends the build.
 */
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'

const LICENCE = /^(licen[cs]e|notice|copying)/i
const PACKAGE_FOLDER = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/

/** `modules` are the files that were taken in; those of our own are passed over. */
export function keepLicences(root, modules) {
  const list = `${root}/dist/vendor/packages.json`
  const versions = existsSync(list) ? readJson(list) : {}
  for (const folder of new Set(modules.flatMap((id) => PACKAGE_FOLDER.exec(id)?.[0] ?? []))) {
    const { name, version, license } = readJson(`${folder}/package.json`)
    const licences = readdirSync(folder).filter((file) => LICENCE.test(file))
    if (licences.length === 0) throw new Error(`${name} has no licence file: it cannot be taken in`)
    mkdirSync(`${root}/dist/vendor/${name}`, { recursive: true })
    for (const file of licences) copyFileSync(`${folder}/${file}`, `${root}/dist/vendor/${name}/${file}`)
    versions[name] = { version, license }
  }
  writeFileSync(list, `${JSON.stringify(versions, null, 2)}\n`)
}

const readJson = (path) => JSON.parse(readFileSync(path, 'utf8'))
