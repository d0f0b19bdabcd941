import manifest from "../package.json" with { type: "json" };

/** The formula for Homebrew. `digestOf`: SHA-256 of the archive for a platform. `url`: the folder with the files of the release. */
export function toFormula(url: string, digestOf: (platform: string) => string): string {
  const source = (platform: string) =>
    `url "${url}/evald-${manifest.version}-${platform}.tar.gz"\n      sha256 "${digestOf(platform)}"`;
  const system = (name: string, os: string) => `  on_${name} do
    on_intel do
      ${source(`${os}-x64`)}
    end
    on_arm do
      ${source(`${os}-arm64`)}
    end
  end`;
  return `class Evald < Formula
  desc "${manifest.description}"
  homepage "${url}"
  version "${manifest.version}"
  license "${manifest.license}"

${system("macos", "darwin")}
${system("linux", "linux")}

  def install
    bin.install "evald"
    doc.install "THIRD-PARTY-LICENSES.txt"
  end

  test do
    assert_equal version.to_s, shell_output("#{bin}/evald --version").strip
  end
end
`;
}
