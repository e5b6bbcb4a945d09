/* SPDX-License-Identifier: Apache-2.0 */
/* A program may fail where the language is older than what it needs. */
/* flags: -e -xerrtags */
/* status: 1 */
/* stderr: [D_PRAGMA_OPTSET] line 6: failed to set option 'version' to '2.1': Requested version is not supported by compiler */
#pragma D option version=2.1
BEGIN
{
	exit(0);
}
