# Makes dist\phasewright-VERSION-windows-amd64.zip: a folder with phasewright.exe (for a terminal) and
# phasewright-window.exe, which need no Python. Needs Python 3.11 or newer from python.org.
#
#     powershell -ExecutionPolicy Bypass -File packaging\windows.ps1

$ErrorActionPreference = "Stop"
Set-Location (Split-Path -Parent $PSScriptRoot)

if (-not (Get-Command py -ErrorAction SilentlyContinue)) {
    Write-Error "There is no Python: install 3.11 or newer from python.org, with its launcher py."
}
py -3 -c "import sys; sys.exit(sys.version_info < (3, 11))"
if ($LASTEXITCODE -ne 0) {
    Write-Error "Phasewright needs Python 3.11 or newer; py -3 starts an older one."
}
py -3 dev.py freeze --archive
exit $LASTEXITCODE
