/* SPDX-License-Identifier: Apache-2.0 */
/* A version has two or three numbers. */
/* flags: -e -xversion=1 */
/* status: 1 */
/* stderr: dtrace: failed to set -x version: Version is not properly formatted or is too large */
BEGIN
{
	exit(0);
}
