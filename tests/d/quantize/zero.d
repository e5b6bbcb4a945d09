/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 37: 0 has its own bucket between -1 and 1. */
BEGIN
{
	@ = quantize(0);
	exit(0);
}
/* output:


           value  ------------- Distribution ------------- count    
              -1 |                                         0        
               0 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 1        
               1 |                                         0        

*/
